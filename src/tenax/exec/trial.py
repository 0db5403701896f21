"""The first program of a trial's container: ``python -m tenax.exec.trial``. Standard library only, Python 3.9.

In order: a line that says what begins (of several members, the first says it); info files; a private view of the file
system where one is needed; the startup hooks (the cluster's, then ``startup-hook.sh`` of the model code), sourced by a
shell that comes back here; the checkpoint to go on from, where it may be gone; the other members; the checkpoint
storage is tried; a process that watches for hangs begins; then the entrypoint replaces this one, or its script starts
in it (`tenax.exec.warm_start`). The work directory is the model code already: the agent unpacked it. What goes wrong on
the way is said on standard error and ends with exit code 1 (126, 127 as a shell's: the entrypoint cannot be executed,
is not there).

Nothing is imported that is not needed: a trial's start should cost little more than its interpreter's.
"""

from __future__ import annotations

import os
import sys

from tenax.errors import InvalidInput, TenaxError
from tenax.exec import hangs, launch, needs, prepare, private_view, warm_start
from tenax.storage.port import StorageUnusable
from tenax.wire.task_names import ASK, CANNOT_START, FIRST_MEMBER, LOOK, YES, names_a_class


def main() -> int:
    try:
        trial = prepare.TrialEnvironment(os.environ)
        launch.settle_account(os.environ)
        entrypoint = trial.config.get("entrypoint")
        if sys.flags.no_site and not prepare.needs_standard_library_only(trial):
            # Forked from a program of the agent's: site packages are not there.
            launch.replace_process([sys.executable, "-m", "tenax.exec.trial"], os.environ)
        alone = not trial.members_expected()
        if launch.AFTER_HOOKS not in sys.argv:
            if alone or trial.env.get(FIRST_MEMBER) == YES:
                prepare.announce(trial)
            prepare.write_info(trial)
            private_view.give_if_needed(os.environ, trial.run_dir, entrypoint)
            hooks = launch.hooks(trial.run_dir)
            if hooks:
                again = [sys.executable, "-m", "tenax.exec.trial", launch.AFTER_HOOKS]
                launch.replace_process(launch.sourcing(hooks, again), os.environ)
        else:
            # The hooks may have installed what needs one, or chosen another environment.
            private_view.give_if_needed(os.environ, trial.run_dir, entrypoint)
        env = launch.with_imports(launch.with_interpreter(os.environ, sys.executable), needs.imports())
        if names_a_class(entrypoint) and needs.has_package(env, entrypoint):
            argv = launch.starting_a_class(entrypoint)
        else:
            argv = launch.argv_of(entrypoint, env.get("PATH", ""))
        if not alone:
            launch.check_reaches_others(entrypoint, env, lambda: needs.has_package(env, entrypoint))
        env = prepare.find_checkpoint(env, LOOK)
        addresses, rank = prepare.meet(trial)
        env = prepare.find_checkpoint(env, ASK)
        if not alone and rank == 0 and FIRST_MEMBER not in trial.env:
            # An older master did not say who is the first.
            prepare.announce(trial)
        if len(addresses) > 1:
            env["DET_CHIEF_IP"] = addresses[0]
        if len(set(addresses)) < len(addresses) and needs.has_package(env, entrypoint):
            argv = launch.sharing_a_machine(argv, env)
        prepare.validate_storage(trial)
        env = hangs.watched(trial, argv, env)
        warm_start.start_script(argv, env, prepare.hparams_of(trial))
        launch.replace_process(argv, env)
    except launch.CannotLaunch as error:
        print(f"tenax: {error}", file=sys.stderr)
        return 127 if isinstance(error.__cause__, FileNotFoundError) else 126
    except (InvalidInput, StorageUnusable) as error:
        print(f"{CANNOT_START}{error}", file=sys.stderr)
        return 1
    except (TenaxError, OSError) as error:
        print(f"tenax: this trial cannot start: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
