"""Rules of a run: conditions on the cluster and on the run itself, judged once, beside the requirements."""

from winready.engine.rules.judge import RuleOptions, judge_rules

__all__ = ["RuleOptions", "judge_rules"]
