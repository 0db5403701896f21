-- Checkpoint garbage collection has one noun, the removal: a checkpoint's is requested; one that a task on an agent has
-- to carry out is delegated.
-- No release has the old names: a master of a development version that still says them is stopped before this runs.
alter table checkpoints rename column doomed to removal_requested;
alter table removals rename column afar to delegated;
