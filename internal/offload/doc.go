// Package offload does for a network interface what its driver would delegate to the adapter: it splits
// large TCP and UDP packets of the system into segments, computes and checks checksums, and merges received
// segments into large packets. It is pure; packets are IP packets, without a link-layer header.
package offload
