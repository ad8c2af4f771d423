// Package topology is what is plugged together in a subnet, as a subnet manager has found it: nodes, their ports and links, with the indexes by
// GUID and by LID. The manager writes it, its administration reads it.
package topology
