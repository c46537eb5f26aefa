"""What `mirrorlake run` is: workers, the control loop, samples; with plan, status and resolve."""
