"""What an AWS account has and may: readers that ask AWS, and pure functions that judge the answers."""
