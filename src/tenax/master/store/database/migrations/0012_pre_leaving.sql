-- A task may say that it leaves without having been asked: then no time is set for it.
alter table allocations drop constraint deadline_when_asked;
alter table allocations add constraint deadline_when_asked
    check (preemption = 'ACKNOWLEDGED' or (preemption_deadline is null) = (preemption = 'NONE'));
