package gameday

// acts is the day in its order.
func acts() []*act {
	return []*act{
		controlAct(), morningAct(), screenAct(), greedyAct(), botAct(), slowAct(),
		pausedAct(), restartedAct(), failoverAct(), rollAct(), reloadAct(),
		switchAct(), floodAct(), lorisAct(), eveningAct(),
	}
}
