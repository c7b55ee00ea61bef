"""The Generator: from a conversation to an approved action plan to a package that runs.

Everything here is a function of its arguments. The package `workflows/Generator` calls it, and
`app` hands in what needs a host.
"""
