-- SPDX-License-Identifier: Apache-2.0
-- Instances that their owners have paused: a daemon that starts leaves them so.
ALTER TABLE instances ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
