// Package topology is the structure of a subnet as a subnet manager has discovered it: nodes, their ports
// and links, with indexes by GUID and by LID. The manager writes it, its administration reads it.
package topology
