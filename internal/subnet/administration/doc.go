// Package administration is the subnet administration of a subnet manager (IBA 15): it answers queries
// about the subnet, above all about paths, and keeps what ports register: multicast groups, services,
// subscriptions, and additional GUIDs.
//
// It belongs to one manager, which it knows by the interface Manager and by the subnet that the manager
// brought up. Like the manager it is pure: the caller passes in the time and received MADs, and takes out
// MADs to send and the next deadline.
package administration
