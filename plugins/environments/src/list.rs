//! The list of all deployments, which counts when it is whole and of one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use reeve_sdk::prelude::*;

use crate::config::{Config, MOST_PAGES, page_source};
use crate::entry::{Entry, at};
use crate::names::without_query;

/// An entry and where it stands in the list; the first is 1.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) position: usize,
    pub(crate) entry: Entry,
}

/// All deployments.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// By id.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// Those without an id that can be read.
    pub(crate) nameless: Vec<Listed>,
}

/// Reads the list.
pub(crate) fn read(config: &Config, cx: &Context) -> Result<List, Failure> {
    let list = &config.supervisor.deployments;
    let url = config.list_url();
    let url = without_query(&url);
    let mut found = Found::default();
    for page in 1..=list.pages {
        let name = page_source(page);
        let document = cx.source(&name)?;
        let place = match list.pages {
            1 => url.to_owned(),
            _ => format!("page {page} of {url}"),
        };
        // One that cannot be had is of another moment than the others, however much they
        // seem to fit.
        if list.pages > 1 && cx.source_age(&name)? > Duration::ZERO {
            return Err(Failure::retry(format!(
                "{place}: cannot be had at present, and all pages have to be of one moment"
            )));
        }
        let read = found.add(&document, config, page);
        read.or_retry(place)?;
    }
    found.whole(config).or_retry(url)
}

/// What the pages read so far say.
#[derive(Default)]
struct Found {
    /// How many deployments there are, as the pages say it.
    total: Option<u64>,
    list: List,
    /// How many entries the last page has, and the last of them.
    count: usize,
    last: Option<Entry>,
}

impl Found {
    /// One page more.
    fn add(&mut self, document: &Document, config: &Config, page: u32) -> Result<(), String> {
        let fields = &config.supervisor.fields;
        let list = &config.supervisor.deployments;
        let content: Json = document.json().map_err(|error| error.to_string())?;
        let entries = match fields.entries.as_str() {
            "" => content.as_array(),
            pointer => content.pointer(pointer).and_then(Value::as_array),
        };
        let entries = entries.ok_or_else(|| {
            format!(
                "no array of deployments at `{}`; see /supervisor/fields/entries",
                fields.entries
            )
        })?;
        if let Some(total) = total_of(&content, &fields.total)? {
            let known = *self.total.get_or_insert(total);
            if known != total {
                return Err(changed(&format!(
                    "a page before it says that there are {known} deployments, and this one {total}"
                )));
            }
        }
        let shared = page > 1;
        if shared {
            let full = u64::try_from(self.count).is_ok_and(|count| count >= list.page_size.into());
            let first = entries.first().map(|value| Entry::read(value, fields));
            let fits = match (full, &first) {
                (false, None) => true,
                (true, Some(first)) => self.last.as_ref().is_some_and(|last| last.id == first.id),
                _ => false,
            };
            if !fits {
                return Err(changed(
                    "it does not begin with the deployment that the page before it ends with",
                ));
            }
            if first != self.last.take().filter(|_| full) {
                return Err(changed(
                    "it begins with a deployment that was otherwise before",
                ));
            }
        }
        self.count = entries.len();
        self.last = entries.last().map(|value| Entry::read(value, fields));
        let before = usize::try_from(list.before(page)).unwrap_or(usize::MAX);
        let own = entries.iter().enumerate().skip(usize::from(shared));
        for (index, value) in own {
            let entry = Entry::read(value, fields);
            let position = before.saturating_add(index).saturating_add(1);
            self.take(Listed { position, entry })?;
        }
        Ok(())
    }

    fn take(&mut self, listed: Listed) -> Result<(), String> {
        let Listed { entry, .. } = &listed;
        let Some(id) = entry.id.text() else {
            self.list.nameless.push(listed);
            return Ok(());
        };
        match self.list.entries.get(id) {
            None => {
                self.list.entries.insert(id.to_owned(), listed.entry);
                Ok(())
            }
            Some(known) if known == entry => Ok(()),
            Some(_) => Err(changed(&format!(
                "deployment `{id}` is in it twice, and not alike"
            ))),
        }
    }

    /// The entries, if these are all of them.
    fn whole(self, config: &Config) -> Result<List, String> {
        let list = &config.supervisor.deployments;
        let room = list.room(list.pages);
        let size = u64::from(list.page_size);
        let read = self.list.entries.len() + self.list.nameless.len();
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        match self.total {
            Some(total) if total == read => {}
            Some(total) if total > room => {
                return Err(format!(
                    "has {total} deployments and {}",
                    too_few(
                        list.pages,
                        size,
                        (1..=MOST_PAGES).find(|pages| list.room(*pages) >= total)
                    )
                ));
            }
            Some(total) => {
                return Err(changed(&format!(
                    "it says that there are {total} deployments, and {read} are in it; if this \
                     stays, it gives fewer at once than /supervisor/deployments/pageSize, {size}"
                )));
            }
            None if u64::try_from(self.count).unwrap_or(u64::MAX) >= size => {
                let next = list.pages.checked_add(1);
                return Err(format!(
                    "may have more than {read} deployments, since the last page is full, and {}",
                    too_few(list.pages, size, next)
                ));
            }
            None => {}
        }
        Ok(self.list)
    }
}

/// How many deployments a page says that there are, where lists say it.
fn total_of(page: &Value, pointer: &str) -> Result<Option<u64>, String> {
    match at(page, pointer) {
        None if pointer.is_empty() => Ok(None),
        None => Err(format!(
            "no number of deployments at `{pointer}`; of a list that does not say it, set \
             /supervisor/fields/total to \"\""
        )),
        Some(total) => total.as_u64().map(Some).ok_or_else(|| {
            format!("no number of deployments at `{pointer}`; see /supervisor/fields/total")
        }),
    }
}

fn changed(how: &str) -> String {
    format!("changed while its pages were read: {how}")
}

fn too_few(pages: u32, size: u64, needed: Option<u32>) -> String {
    let pages = match pages {
        1 => format!("1 page of {size} is read"),
        pages => format!("{pages} pages of {size} are read"),
    };
    match needed.filter(|needed| *needed <= MOST_PAGES) {
        Some(needed) => format!("{pages}: set /supervisor/deployments/pages to {needed}"),
        None => format!(
            "{pages}: {MOST_PAGES} pages are the most, so have /supervisor/deployments/query ask \
             for fewer, or set a larger pageSize"
        ),
    }
}
