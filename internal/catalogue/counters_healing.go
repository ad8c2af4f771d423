package catalogue

func softHealing() CounterSet {
	return CounterSet{
		Name: "SoftVPI Self-Healing", Generations: Both, Short: "healing", Instances: "adapter", Reset: ResetOnDemand,
		Description: "What the sensors of an adapter have found, and how often self-healing has restarted it. They count from the driver's start.",
		Counters: counted(
			total("Restarts", "restarts", "restarts", "restarts by self-healing"),
			total("Send queues stuck in hardware", "send_hardware_errors", "errors", "times that the link took none of the packets that waited"),
			total("Send queues stuck in software", "send_software_errors", "errors", "times that completions stayed in the engine"),
			total("Receive queues stuck in software", "receive_software_errors", "errors", "times that the host took none of the frames that waited"),
			total("Receive completion errors", "receive_completion_errors", "errors", "checks at which the link had failed to receive"),
			total("Send completion errors", "send_completion_errors", "errors", "checks at which the link had failed to send"),
			total("Event queues stuck", "event_queue_errors", "errors", "times that an event of a completion queue was not raised"),
			total("Command time-outs", "command_errors", "errors", "commands that did not return"),
			total("Health counter errors", "health_errors", "errors", "times that the port's loop did not turn"),
			total("Internal errors", "internal_errors", "errors", "panics of the port's engines"),
		),
	}
}
