//! Tables for people.

/// Rows below a head, their columns aligned. The last column is not padded.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].as_str());
        let lengths = cells.chain([head[column]]).map(|cell| cell.chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.into_iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(head);
    for row in rows {
        line(row.each_ref().map(String::as_str));
    }
    out
}

/// `1 object`, `2 objects`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let rows = [row("ä", "long text"), row("longer", "")];
        assert_eq!(
            table(["A", "B"], &rows),
            "A       B\nä       long text\nlonger\n"
        );
    }
}
