-- Leases under the names that loops had once kept masters of before from running them (0017): none is left.
delete from leases
where loop in ('tending', 'launching', 'rescuing', 'deleting', 'collecting', 'retaining', 'telling')
    and holder like 'renamed to %';
