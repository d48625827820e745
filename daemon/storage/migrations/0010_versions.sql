-- SPDX-License-Identifier: Apache-2.0
-- What a domain's home was last run with: its first start with another version is an upgrade.
ALTER TABLE domains ADD COLUMN ran_template TEXT NOT NULL DEFAULT '';
ALTER TABLE domains ADD COLUMN ran_version TEXT NOT NULL DEFAULT '';
-- The next start uses the version of the template that the node holds.
ALTER TABLE heads ADD COLUMN at_version INTEGER NOT NULL DEFAULT 0 CHECK (at_version IN (0, 1));
-- Of disposables that are kept: something was run in them, as far as anybody knows.
UPDATE domains SET ran_template = template, ran_version = 'unknown' WHERE kept = 1;
