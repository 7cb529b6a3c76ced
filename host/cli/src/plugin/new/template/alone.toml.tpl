[package]
name = "{{name}}"
description = "Greets every Profile"
version = "0.1.0"
edition = "2024"
publish = false

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
reeve-sdk = {{sdk}}

# Nothing of a workspace that this folder may be in concerns it.
[workspace]
