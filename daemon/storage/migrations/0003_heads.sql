-- SPDX-License-Identifier: Apache-2.0
-- Outputs of the instance's graphics device; 0: it has none.
ALTER TABLE instances ADD COLUMN heads INTEGER NOT NULL DEFAULT 0 CHECK (heads BETWEEN 0 AND 16);
