-- What a person wants of a machine: that it ends once its work has left, or at once; empty: nothing.
alter table machines add column dismissal text not null default '' check (dismissal in ('', 'LEAVE', 'NOW'));
