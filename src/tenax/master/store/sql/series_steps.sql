-- name: blocks
select run_id, steps from metric_blocks where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: tail
select run_id, steps from metric_tail where month = $1 and trial_id = $2 and grp = $3 order by first_ord;
