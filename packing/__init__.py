"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows."""
