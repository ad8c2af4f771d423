// Package interop runs SoftVPI against a peer that is not ours: Linux's Soft-RoCE
// (rdma_rxe), in a small virtual machine on the other end of a TAP, in a network
// namespace that the test makes for itself. make interop builds the guest and runs
// the tests; without it they are skipped. docs/interop.md tells what they found.
package interop
