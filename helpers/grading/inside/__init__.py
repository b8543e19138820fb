"""The program that runs inside the sandbox, next to the learner's code. The rest of grading controls it from outside.

In the sandbox this package is called helpers.inside, in a copy of the part of helpers that learners have. Its modules
therefore import one another relatively.
"""
