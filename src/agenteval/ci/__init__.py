"""CI hosts: one package per host."""
