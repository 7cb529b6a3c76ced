//! Levels of a graph: how many steps come before each node.

/// An edge: `after` has to come `steps` levels after `before`, or more. With 0
/// steps both may be in one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) steps: usize,
}

/// The lowest level of each of `count` nodes.
///
/// # Errors
///
/// A cycle, beginning with its smallest node; each node waits for the next.
pub(super) fn levels(count: usize, edges: &[Edge]) -> Result<Vec<usize>, Vec<usize>> {
    let mut graph = Graph::new(count, edges);
    graph.settle();
    match graph.first_open() {
        None => Ok(graph.level),
        Some(node) => Err(graph.cycle_near(node)),
    }
}

/// As [`levels`], but where there is a cycle, the edges to its smallest node
/// are given up. Returns these too.
pub(super) fn levels_at_any_cost(count: usize, edges: &[Edge]) -> (Vec<usize>, Vec<Edge>) {
    let mut graph = Graph::new(count, edges);
    let mut given_up = Vec::new();
    loop {
        graph.settle();
        let Some(node) = graph.first_open() else {
            return (graph.level, given_up);
        };
        let cycle = graph.cycle_near(node);
        let (first, second) = (cycle[0], cycle.get(1).copied().unwrap_or(cycle[0]));
        let given = graph.give_up(second, first);
        given_up.extend(given);
    }
}

struct Graph {
    edges: Vec<Edge>,
    level: Vec<usize>,
    /// Edges by the node that comes before.
    below: Vec<Vec<usize>>,
    /// How many edges each node still waits for.
    waits: Vec<usize>,
    /// Whether an edge is done with.
    done: Vec<bool>,
    settled: Vec<bool>,
    ready: Vec<usize>,
}

impl Graph {
    fn new(count: usize, edges: &[Edge]) -> Self {
        let mut below = vec![Vec::new(); count];
        let mut waits = vec![0; count];
        for (index, edge) in edges.iter().enumerate() {
            below[edge.before].push(index);
            waits[edge.after] += 1;
        }
        Self {
            edges: edges.to_vec(),
            level: vec![0; count],
            below,
            ready: (0..count).filter(|node| waits[*node] == 0).collect(),
            waits,
            done: vec![false; edges.len()],
            settled: vec![false; count],
        }
    }

    /// Gives all nodes that wait for nothing their level, and so on.
    fn settle(&mut self) {
        while let Some(node) = self.ready.pop() {
            self.settled[node] = true;
            for index in self.below[node].clone() {
                if self.done[index] {
                    continue;
                }
                self.done[index] = true;
                let Edge { after, steps, .. } = self.edges[index];
                self.level[after] = self.level[after].max(self.level[node] + steps);
                self.waits[after] -= 1;
                if self.waits[after] == 0 {
                    self.ready.push(after);
                }
            }
        }
    }

    fn first_open(&self) -> Option<usize> {
        self.settled.iter().position(|settled| !settled)
    }

    /// Walks back from an open node until one comes again: that is a cycle.
    fn cycle_near(&self, start: usize) -> Vec<usize> {
        let mut seen = vec![None; self.settled.len()];
        let mut path = Vec::new();
        let mut node = start;
        loop {
            if let Some(place) = seen[node] {
                let mut cycle: Vec<usize> = path.split_off(place);
                let smallest = cycle.iter().enumerate().min_by_key(|(_, node)| **node);
                let shift = smallest.map_or(0, |(place, _)| place);
                cycle.rotate_left(shift);
                return cycle;
            }
            seen[node] = Some(path.len());
            path.push(node);
            // An open node waits for another one that is open.
            let before = self
                .edges
                .iter()
                .zip(&self.done)
                .filter(|(edge, done)| edge.after == node && !**done)
                .map(|(edge, _)| edge.before)
                .min();
            match before {
                Some(before) => node = before,
                None => return vec![node],
            }
        }
    }

    fn give_up(&mut self, before: usize, after: usize) -> Vec<Edge> {
        let mut given_up = Vec::new();
        for index in 0..self.edges.len() {
            let edge = self.edges[index];
            if !self.done[index] && edge.before == before && edge.after == after {
                self.done[index] = true;
                given_up.push(edge);
                self.waits[after] -= 1;
            }
        }
        if self.waits[after] == 0 && !self.settled[after] {
            self.ready.push(after);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges(list: &[(usize, usize, usize)]) -> Vec<Edge> {
        list.iter()
            .map(|&(before, after, steps)| Edge {
                before,
                after,
                steps,
            })
            .collect()
    }

    #[test]
    fn a_level_is_the_longest_way() {
        let diamond = edges(&[
            (0, 1, 1),
            (0, 2, 1),
            (1, 3, 1),
            (2, 3, 1),
            (0, 3, 1),
            (3, 4, 0),
        ]);
        assert_eq!(levels(6, &diamond), Ok(vec![0, 1, 1, 2, 2, 0]));
        assert_eq!(levels(0, &[]), Ok(vec![]));
    }

    #[test]
    fn a_cycle_is_told_from_its_smallest_node() {
        for (list, cycle) in [
            (vec![(1, 1, 1)], vec![1]),
            (vec![(1, 2, 1), (2, 1, 0)], vec![1, 2]),
            // 3 waits for 2, 2 for 1, 1 for 3; 4 only hangs on it.
            (
                vec![(2, 3, 1), (1, 2, 1), (3, 1, 1), (3, 4, 1), (0, 1, 1)],
                vec![1, 3, 2],
            ),
        ] {
            assert_eq!(levels(5, &edges(&list)), Err(cycle), "{list:?}");
        }
    }

    fn graphs() -> impl Strategy<Value = (usize, Vec<Edge>)> {
        (1_usize..12).prop_flat_map(|count| {
            let edge = (0..count, 0..count, 0_usize..3);
            let list = prop::collection::vec(edge, 0..24);
            list.prop_map(move |list| (count, edges(&list)))
        })
    }

    proptest! {
        #[test]
        fn levels_respect_edges_or_there_is_a_cycle((count, edges) in graphs()) {
            let respected = |level: &[usize], edge: &Edge| {
                level[edge.after] >= level[edge.before] + edge.steps
            };
            match levels(count, &edges) {
                Ok(level) => {
                    prop_assert!(edges.iter().all(|edge| respected(&level, edge)));
                    // No level is higher than some edge demands.
                    for (node, own) in level.iter().enumerate() {
                        let demanded = edges.iter().filter(|e| e.after == node)
                            .map(|e| level[e.before] + e.steps).max().unwrap_or(0);
                        prop_assert_eq!(*own, demanded);
                    }
                }
                Err(cycle) => {
                    for (place, node) in cycle.iter().enumerate() {
                        let waits_for = cycle[(place + 1) % cycle.len()];
                        prop_assert!(edges.iter().any(|e| e.after == *node && e.before == waits_for));
                    }
                }
            }
            let (level, given_up) = levels_at_any_cost(count, &edges);
            prop_assert_eq!(given_up.is_empty(), levels(count, &edges).is_ok());
            for edge in edges.iter().filter(|edge| !given_up.contains(edge)) {
                prop_assert!(respected(&level, edge), "{:?}", edge);
            }
        }
    }
}
