// Package tagmatch is what a shared receive queue with tag matching does (rdma-core's Documentation/tag_matching.md): the
// headers with which messages begin, and the list of tagged buffers that messages are matched with.
//
// It is pure: the transport engine asks for each message which buffer it is for, and programs change the list.
package tagmatch
