//! "Did you mean" suggestions.

/// Returns the most similar candidate; `None` if the word is probably not a misspelling.
pub(crate) fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let max_distance = (word.chars().count() / 3).max(1);
    candidates
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(word, candidate, max_distance), candidate))
        .filter(|(distance, _)| *distance <= max_distance)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the number of letters to insert, remove, replace or swap to turn one word into the other, ignoring
/// case. Results above `max` are not exact.
fn distance(a: &str, b: &str, max: usize) -> usize {
    if a.len().abs_diff(b.len()) > max {
        return max + 1;
    }
    let a: Vec<u8> = a.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let b: Vec<u8> = b.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(max + 1)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn only_similar_words_are_suggested() {
        let words = ["Account", "Acount", "balance", "long"];
        assert_eq!(closest("Accuont", words.iter().copied()), Some("Account"));
        assert_eq!(closest("ballance", words.iter().copied()), Some("balance"));
        assert_eq!(closest("Lnog", words.iter().copied()), Some("long"));
        assert_eq!(closest("Customer", words.iter().copied()), None);
        assert_eq!(closest("x", ["yz"].into_iter()), None);
    }
}
