"""Uninstall Python distributions without losing files or libraries that the rest of the environment needs.

The public interface is what this module names: ``scan(environment) -> Snapshot``,
``plan(snapshot, request) -> Plan``, ``execute(plan) -> Outcome``.
"""

__version__ = "0.1.0"
