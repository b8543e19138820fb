"""What runs inside the sandbox, beside learner code; the other modules of grading watch it from outside.

In the sandbox this folder stands beside a copy of the learner's wing, without the other two. Its modules import one
another relatively: there they are `inside`, here helpers.grading.inside.
"""
