package web

// counters shows the page of the graphs, whose script reads the counters from the management interface.
func (s *Server) counters(q *request) error {
	v, err := s.view(q, "Counters", "counters")
	if err != nil {
		return err
	}
	return s.show(q, "counters", v)
}
