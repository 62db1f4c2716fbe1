"""Measurements that print a table and keep their figures as JSON."""
