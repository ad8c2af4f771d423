// Package simulate runs scenarios in virtual time: switches of internal/fabric/ethernet, and hosts at their stations that send flows,
// either RC queue pairs of internal/transport behind ports, or lean senders, which have DCQCN's reaction and notification points and
// packets, and no verbs. What a run gives follows from its scenario alone.
package simulate
