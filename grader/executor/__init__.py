"""The trusted side: takes kernels from a source file and replays recordings on an engine."""
