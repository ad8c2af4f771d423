// Package administration is the subnet administration of a subnet manager (IBA 15): it answers questions about the subnet, about paths above all, and
// keeps what ports register: multicast groups, services, subscriptions, and GUIDs beside their own.
//
// It belongs to one manager, of which it knows the interface Manager and the subnet that the manager brought up. It is pure as the manager is:
// it is told the time and handed MADs, and hands MADs and its next deadline back.
package administration
