//! Server-side apply as a library: field sets, managedFields, structured merge.
