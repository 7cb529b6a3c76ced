# {{name}}

A plugin for Reeve: puts a ConfigMap with a greeting into the namespace of every Profile. `reeve test`
in this folder plays its scenarios; `src/lib.rs` is where it becomes your own.
