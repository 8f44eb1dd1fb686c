//! Hand-made snapshots.
