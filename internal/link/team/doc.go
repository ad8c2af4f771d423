// Package team is a link of whole Ethernet frames that is made of several: the members of a team (internal/team, which decides). Whoever
// stands on it sees one link, which is up as long as a member carries frames: stations, their neighbours and groups are the team's, and
// what was sent by a member that fails is lost, as a network loses packets.
//
// It owns its members: it opens none of them, closes all, and lets them hear what is for its stations. Frames are not kept: where no
// member sends, they are lost.
//
// Files: team opens and closes it, stations says what the members listen to, send and receive move frames, turn does what is due.
package team
