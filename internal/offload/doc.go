// Package offload does for a network interface what its driver would have the adapter do: it cuts large TCP packets of the
// system into segments, makes and checks checksums, and joins received segments into large packets again. It is pure;
// packets are those of IP, without a link-layer header.
package offload
