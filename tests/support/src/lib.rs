//! What tests share: finding built components, waiting, sample objects.
