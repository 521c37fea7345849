"""How writes that name only a part of an object change it: JSON, merge and strategic patches, server-side apply.

Pure functions over plain objects: what goes in is never changed, unchanged parts are shared with what comes out.
"""

from winready_sandbox.api.patches.jsonpatch import json_patch
from winready_sandbox.api.patches.merge import merge_patch
from winready_sandbox.api.patches.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "strategic_merge"]
