"""The program that runs inside the sandbox, next to the learner's code. The rest of grading controls it from outside.

In the sandbox this folder is helpers/inside, in a copy of the part of helpers that learners have. Its modules import
one another relatively, because their package is called helpers.grading.inside everywhere else.
"""
