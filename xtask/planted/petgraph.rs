//! Builds graphs and asks of their ways, parts and trees.
mod harness;

use std::hint::black_box;

use petgraph::algo::{condensation, dijkstra, is_isomorphic, kosaraju_scc, min_spanning_tree, tarjan_scc, toposort};
use petgraph::data::FromElements;
use petgraph::dot::Dot;
use petgraph::graph::{DiGraph, NodeIndex, UnGraph};
use petgraph::graphmap::UnGraphMap;
use petgraph::unionfind::UnionFind;
use petgraph::visit::{Bfs, Dfs, EdgeRef, Topo};

fn work() -> usize {
    let mut graph: DiGraph<String, u32> = DiGraph::new();
    let nodes: Vec<NodeIndex> = (0..24_u32).map(|at| graph.add_node(black_box(format!("node {at}")))).collect();
    for at in 0..60_usize {
        graph.add_edge(nodes[at * 7 % 24], nodes[(at * 5 + 1) % 24], at as u32 % 9);
    }
    let mut count = dijkstra(&graph, nodes[0], None, |edge| *edge.weight()).len();
    count += kosaraju_scc(&graph).len() + tarjan_scc(&graph).len() + usize::from(toposort(&graph, None).is_ok());
    count += condensation(graph.clone(), true).node_count();
    let (mut depth, mut breadth) = (Dfs::new(&graph, nodes[3]), Bfs::new(&graph, nodes[3]));
    while let Some(node) = depth.next(&graph) {
        count += graph[node].len();
    }
    while let Some(node) = breadth.next(&graph) {
        count += graph.edges(node).map(|edge| edge.target().index()).sum::<usize>();
    }
    let order: DiGraph<(), ()> = DiGraph::from_edges((0..12_u32).map(|at| (at / 2, at + 1)));
    let mut topological = Topo::new(&order);
    while let Some(node) = topological.next(&order) {
        count += node.index();
    }
    let ways: UnGraph<(), u32> = UnGraph::from_edges((0..30_u32).map(|at| (at % 11, (at * 3 + 1) % 11, at)));
    let tree = UnGraph::<(), u32>::from_elements(min_spanning_tree(&ways));
    count += tree.edge_count() + usize::from(is_isomorphic(&order, &order.clone()));
    let mut map: UnGraphMap<u32, u32> = UnGraphMap::new();
    for at in 0..20_u32 {
        map.add_edge(at % 7, at % 5, at);
    }
    map.remove_node(3);
    count += map.neighbors(2).count() + map.all_edges().count();
    graph.retain_nodes(|_, node| node.index() % 3 > 0);
    let mut union = UnionFind::<usize>::new(10);
    union.union(1, 2);
    count + union.into_labeling().len() + format!("{:?}", Dot::new(&graph)).len()
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
