"""What a model says about itself: information, sensitivity, messages one by one."""
