"""What several test files share: toy courses, simulated GPUs, surveys, browsers."""
