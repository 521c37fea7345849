"""Rules of a run: conditions on the cluster and on the run itself, judged once, beside the requirements."""

from winready.engine.rules.judge import JUDGES, judge_rules

__all__ = ["JUDGES", "judge_rules"]
