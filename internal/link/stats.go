package link

// Add adds another link's counters.
func (s *Stats) Add(t Stats) {
	s.SentPackets += t.SentPackets
	s.SentBytes += t.SentBytes
	s.SentBursts += t.SentBursts
	s.SentStaged += t.SentStaged
	s.ReceivedPackets += t.ReceivedPackets
	s.ReceivedBytes += t.ReceivedBytes
	s.SendBlocked += t.SendBlocked
	s.SendErrors += t.SendErrors
	s.ReceiveDrops += t.ReceiveDrops
	s.ReceiveTruncated += t.ReceiveTruncated
	s.ReceiveUndersize += t.ReceiveUndersize
	s.ErrorsLost += t.ErrorsLost
	s.SentFrames += t.SentFrames
	s.ReceivedFrames += t.ReceivedFrames
	s.OtherSourcePorts += t.OtherSourcePorts
	s.ReceiveBuffer += t.ReceiveBuffer
	s.ImpairedLost += t.ImpairedLost
	s.ImpairedDuplicated += t.ImpairedDuplicated
	s.ImpairedReordered += t.ImpairedReordered
	s.ImpairedCorrupted += t.ImpairedCorrupted
	s.ImpairedMarked += t.ImpairedMarked
	s.ImpairedDelayed += t.ImpairedDelayed
}
