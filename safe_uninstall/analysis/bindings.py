"""Which needs of survivors are bound otherwise in the outcome, one by one."""

from safe_uninstall.analysis.losses import LinkageJudgement
from safe_uninstall.model.plan import BindingChange


def binding_changes(judgement: LinkageJudgement) -> tuple[BindingChange, ...]:
    """Return every binding that a change loses, moves to another file, or keeps with another file's bytes.

    Args:
        judgement: what the change does to the needs of the survivors.
    """
    changes = [
        BindingChange(consumer=consumer, name=loss.name, before=loss.provider, after=None)
        for loss in judgement.losses
        for consumer in loss.consumers
    ]
    changes += [
        BindingChange(consumer=change.consumer, name=change.name, before=change.before, after=change.after)
        for change in (*judgement.changes, *judgement.renewed)
    ]
    return tuple(sorted(changes, key=lambda item: (item.consumer.path, item.name)))
