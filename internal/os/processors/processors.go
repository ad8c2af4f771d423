// Package processors knows the processors of the machine on which this process may run, with their NUMA nodes, and binds threads
// to them. Where the system says nothing of nodes, there is one; where threads cannot be bound, they are not.
package processors

import (
	"slices"
	"strconv"
	"strings"
)

// Processor is one on which this process may run.
type Processor struct {
	Number int // as the system numbers it
	Node   int // its NUMA node
}

// parseList parses the system's lists of processors: "0-3,8". What is no number ends the list.
func parseList(s string) (list []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		if err != nil {
			return list
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(high); err != nil || last-first > most {
				return list
			}
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	return list
}

// most is how many processors a list has at most: no system has more.
const most = 1 << 16

// onNodes returns processors with their nodes, of which lists are known by node.
func onNodes(numbers []int, nodes map[int][]int) []Processor {
	list := make([]Processor, len(numbers))
	for i, n := range numbers {
		list[i].Number = n
		for node, of := range nodes {
			if slices.Contains(of, n) {
				list[i].Node = node
			}
		}
	}
	return list
}
