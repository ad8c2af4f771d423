// Package lan is a network of Ethernet switches as one pure engine, with jacks at its hosts into which adapters are plugged. Time and
// randomness are arguments; the switches and links are those of package ethernet.
//
// A host's end of its link is a station: it sends what its adapter has put in at the link's rate, and keeps the little that does not
// go at once. Of what arrives it hands over as much as the adapter takes; the rest waits in it. Where pauses are configured for it, it
// obeys and sends them as a network card does, for adapters that know none. Pauses go to the adapter too, and what the adapter
// sends of its own goes to the switch.
package lan
