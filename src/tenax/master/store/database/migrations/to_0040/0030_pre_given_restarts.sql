-- Whether max_restarts was set by whoever submitted it, or a template of theirs: where it was, it is kept to. What is there
-- already was submitted when it always was.
alter table experiment_documents add column max_restarts_given boolean not null default true;
