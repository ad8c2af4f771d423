package path

// transition is where an event leads, and what is to be done.
type transition struct {
	to    State
	do    Actions
	legal bool
}

func to(s State, do Actions) transition { return transition{s, do, true} }

// table has a row for each state, with the events that can happen in it. Policies change and ends end at any time, so
// Permit, Demand, Offer, Refuse, Recall and Break are legal everywhere; what comes of a look is legal where the owner looks.
var table = [states][events]transition{
	Wire: {
		Permit: to(Waiting, 0),
		Demand: to(Wire, 0),
		Offer:  to(Wire, 0),
		Refuse: to(Wire, 0),
		Recall: to(Wire, 0),
		Break:  to(Wire, 0),
	},
	Waiting: {
		Permit: to(Waiting, 0),
		Demand: to(Wire, 0),
		Quiet:  to(Local, Join),
		Busy:   to(Joining, Hold),
		Long:   to(Waiting, Rest),
		Offer:  to(Waiting, 0),
		Refuse: to(Waiting, 0),
		Recall: to(Waiting, 0),
		Break:  to(Wire, 0),
	},
	Joining: {
		Permit: to(Joining, 0),
		Demand: to(Wire, Release),
		Quiet:  to(Local, Join|Release),
		Busy:   to(Joining, 0),
		Long:   to(Joining, 0),
		Expire: to(Waiting, Release|Rest),
		Offer:  to(Joining, 0),
		Refuse: to(Joining, 0),
		Recall: to(Joining, 0),
		Break:  to(Wire, Release),
	},
	Local: {
		Permit: to(Local, 0),
		Demand: to(Leaving, Hold),
		Offer:  to(Offered, 0),
		Refuse: to(Local, 0),
		Recall: to(Local, 0),
		Break:  to(Wire, Leave),
	},
	Offered: {
		Permit: to(Offered, 0),
		Demand: to(Leaving, Hold),
		Quiet:  to(Delegated, Hold|Delegate),
		Busy:   to(Delegating, Hold),
		Long:   to(Offered, 0),
		Offer:  to(Offered, 0),
		Refuse: to(Local, 0),
		Recall: to(Offered, 0),
		Break:  to(Wire, Leave),
	},
	Delegating: {
		Permit: to(Delegating, 0),
		Demand: to(Leaving, 0),
		Quiet:  to(Delegated, Delegate),
		Busy:   to(Delegating, 0),
		Long:   to(Offered, Release),
		Offer:  to(Delegating, 0),
		Refuse: to(Local, Release),
		Recall: to(Delegating, 0),
		Break:  to(Wire, Leave|Release),
	},
	Leaving: {
		Permit: to(Local, Release),
		Demand: to(Leaving, 0),
		Quiet:  to(Wire, Leave|Release),
		Offer:  to(Leaving, 0),
		Refuse: to(Leaving, 0),
		Recall: to(Leaving, 0),
		Break:  to(Wire, Leave|Release),
	},
	Delegated: {
		Permit: to(Delegated, 0),
		Demand: to(Withdrawing, Withdraw),
		Offer:  to(Delegated, 0),
		Refuse: to(Recalling, Withdraw),
		Recall: to(Recalling, Withdraw),
		Break:  to(Ending, Withdraw),
	},
	Recalling: {
		Permit:   to(Recalling, 0),
		Demand:   to(Withdrawing, 0),
		Offer:    to(Recalling, 0),
		Refuse:   to(Recalling, 0),
		Recall:   to(Recalling, 0),
		Returned: to(Local, Reclaim|Release),
		Break:    to(Ending, 0),
	},
	Withdrawing: {
		Permit:   to(Recalling, 0),
		Demand:   to(Withdrawing, 0),
		Offer:    to(Withdrawing, 0),
		Refuse:   to(Withdrawing, 0),
		Recall:   to(Withdrawing, 0),
		Returned: to(Leaving, Reclaim),
		Break:    to(Ending, 0),
	},
	Ending: {
		Permit:   to(Ending, 0),
		Demand:   to(Ending, 0),
		Offer:    to(Ending, 0),
		Refuse:   to(Ending, 0),
		Recall:   to(Ending, 0),
		Returned: to(Wire, Reclaim|Leave|Release),
		Break:    to(Ending, 0),
	},
}
